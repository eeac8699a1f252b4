// A network of one hidden layer. Its parameters are one flat vector in torch's order: W1, b1, W2, b2.

function network(inputs, hidden, classes) {
  const w1 = 0, b1 = hidden * inputs, w2 = b1 + hidden, b2 = w2 + classes * hidden;
  return {inputs, hidden, classes, w1, b1, w2, b2, size: b2 + classes};
}

// Logits of the samples at `indices` of `images` (rows of net.inputs numbers); hidden activations are kept.
function forward(net, x, images, indices) {
  const n = indices.length, a = new Float64Array(n * net.hidden), z = new Float64Array(n * net.classes);
  for (let i = 0; i < n; i++) {
    const from = indices[i] * net.inputs;
    for (let h = 0; h < net.hidden; h++) {
      let sum = x[net.b1 + h];
      const row = net.w1 + h * net.inputs;
      for (let k = 0; k < net.inputs; k++) sum += x[row + k] * images[from + k];
      a[i * net.hidden + h] = sum > 0 ? sum : 0;
    }
    for (let c = 0; c < net.classes; c++) {
      let sum = x[net.b2 + c];
      const row = net.w2 + c * net.hidden;
      for (let h = 0; h < net.hidden; h++) sum += x[row + h] * a[i * net.hidden + h];
      z[i * net.classes + c] = sum;
    }
  }
  return {a, z};
}

// Gradient of a loss whose derivative by the logits is dz (n × classes).
function backward(net, x, images, indices, a, dz) {
  const g = new Float64Array(net.size), da = new Float64Array(net.hidden);
  for (let i = 0; i < indices.length; i++) {
    const from = indices[i] * net.inputs;
    da.fill(0);
    for (let c = 0; c < net.classes; c++) {
      const d = dz[i * net.classes + c], row = net.w2 + c * net.hidden;
      g[net.b2 + c] += d;
      for (let h = 0; h < net.hidden; h++) {
        g[row + h] += d * a[i * net.hidden + h];
        da[h] += d * x[row + h];
      }
    }
    for (let h = 0; h < net.hidden; h++) {
      if (a[i * net.hidden + h] <= 0) continue;
      const d = da[h], row = net.w1 + h * net.inputs;
      g[net.b1 + h] += d;
      for (let k = 0; k < net.inputs; k++) g[row + k] += d * images[from + k];
    }
  }
  return g;
}

// Softmax of each row of z, as a new array.
function softmax(z, classes) {
  const p = new Float64Array(z.length);
  for (let i = 0; i < z.length; i += classes) {
    let top = -Infinity, sum = 0;
    for (let c = 0; c < classes; c++) top = Math.max(top, z[i + c]);
    for (let c = 0; c < classes; c++) sum += p[i + c] = Math.exp(z[i + c] - top);
    for (let c = 0; c < classes; c++) p[i + c] /= sum;
  }
  return p;
}

function largest(z, from, classes) {
  let best = 0;
  for (let c = 1; c < classes; c++) if (z[from + c] > z[from + best]) best = c;
  return best;
}

// Right answers and samples of every class, and in all.
function accuracy(net, x, data, indices) {
  const {z} = forward(net, x, data.images, indices);
  const right = new Float64Array(net.classes), of = new Float64Array(net.classes);
  for (let i = 0; i < indices.length; i++) {
    const label = data.labels[indices[i]];
    of[label]++;
    if (largest(z, i * net.classes, net.classes) === label) right[label]++;
  }
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  return {all: sum(right) / sum(of), classes: Array.from(right, (value, c) => (of[c] ? value / of[c] : NaN))};
}

// A client's training: plain SGD over minibatches (lists of indices); what it adds to the model that it was sent.
function train(net, start, data, batches, rate) {
  const x = Float64Array.from(start);
  for (const indices of batches) {
    const {a, z} = forward(net, x, data.images, indices), dz = softmax(z, net.classes);
    indices.forEach((index, i) => { dz[i * net.classes + data.labels[index]] -= 1; });
    for (let i = 0; i < dz.length; i++) dz[i] /= indices.length;
    const g = backward(net, x, data.images, indices, a, dz);
    for (let i = 0; i < x.length; i++) x[i] -= rate * g[i];
  }
  return x.map((value, i) => value - start[i]);
}

// Add to dImages the derivative by the images themselves, given that by the logits.
function inputGradient(net, x, a, dz, dImages) {
  for (let i = 0; i < dImages.length / net.inputs; i++) {
    for (let h = 0; h < net.hidden; h++) {
      if (a[i * net.hidden + h] <= 0) continue;
      let d = 0;
      for (let c = 0; c < net.classes; c++) d += dz[i * net.classes + c] * x[net.w2 + c * net.hidden + h];
      for (let k = 0; k < net.inputs; k++) dImages[i * net.inputs + k] += d * x[net.w1 + h * net.inputs + k];
    }
  }
}
