// A generator of images: noise, and a fifth of its class's embedding → linear, batch normalisation, leaky ReLU, linear,
// sigmoid. θ is one flat vector in torch's order: W1, b1, γ, β, W2, b2. It is the library's VectorGenerator.

function generator(nz, hidden, pixels, low, high) {
  const w1 = 0, b1 = hidden * nz, scale = b1 + hidden, shift = scale + hidden, w2 = shift + hidden, b2 = w2 + pixels * hidden;
  return {nz, hidden, pixels, low, high, w1, b1, scale, shift, w2, b2, size: b2 + pixels};
}

const CLASS_WEIGHT = 0.2;

// latents: {noise: B × nz, embeddings: C × nz}. Returns images (B × pixels) and what the way back needs.
function generate(G, theta, {noise, embeddings}, labels) {
  const B = labels.length, {nz, hidden, pixels} = G, z = new Float64Array(B * nz), h = new Float64Array(B * hidden);
  for (let i = 0; i < B; i++) {
    for (let k = 0; k < nz; k++) z[i * nz + k] = noise[i * nz + k] + CLASS_WEIGHT * embeddings[labels[i] * nz + k];
    for (let j = 0; j < hidden; j++) {
      let sum = theta[G.b1 + j];
      for (let k = 0; k < nz; k++) sum += theta[G.w1 + j * nz + k] * z[i * nz + k];
      h[i * hidden + j] = sum;
    }
  }
  const spread = new Float64Array(hidden), act = new Float64Array(B * hidden), images = new Float64Array(B * pixels);
  for (let j = 0; j < hidden; j++) {
    let mean = 0, square = 0;
    for (let i = 0; i < B; i++) mean += h[i * hidden + j] / B;
    for (let i = 0; i < B; i++) square += (h[i * hidden + j] - mean) ** 2 / B;
    spread[j] = Math.sqrt(square + 1e-5);
    for (let i = 0; i < B; i++) {
      h[i * hidden + j] = (h[i * hidden + j] - mean) / spread[j];
      const value = theta[G.scale + j] * h[i * hidden + j] + theta[G.shift + j];
      act[i * hidden + j] = value > 0 ? value : 0.2 * value;
    }
  }
  for (let i = 0; i < B; i++) {
    for (let p = 0; p < pixels; p++) {
      let sum = theta[G.b2 + p];
      for (let j = 0; j < hidden; j++) sum += theta[G.w2 + p * hidden + j] * act[i * hidden + j];
      images[i * pixels + p] = G.low + (G.high - G.low) / (1 + Math.exp(-sum));
    }
  }
  return {z, h, spread, act, images};
}

// Gradients by θ and by the latents, given the derivative of a loss by the images.
function generatorGradients(G, theta, {z, h, spread, act, images}, labels, dImages, classes) {
  const B = labels.length, {nz, hidden, pixels} = G, g = new Float64Array(G.size), dh = new Float64Array(B * hidden);
  for (let i = 0; i < B; i++) {
    for (let p = 0; p < pixels; p++) {
      const s = (images[i * pixels + p] - G.low) / (G.high - G.low), d = dImages[i * pixels + p] * (G.high - G.low) * s * (1 - s);
      g[G.b2 + p] += d;
      for (let j = 0; j < hidden; j++) {
        g[G.w2 + p * hidden + j] += d * act[i * hidden + j];
        dh[i * hidden + j] += d * theta[G.w2 + p * hidden + j];
      }
    }
  }
  const dNoise = new Float64Array(B * nz), dEmbeddings = new Float64Array(classes * nz);
  for (let j = 0; j < hidden; j++) {
    let sum = 0, along = 0;
    for (let i = 0; i < B; i++) {
      const at = i * hidden + j;
      if (act[at] < 0) dh[at] *= 0.2;
      sum += dh[at];
      along += dh[at] * h[at];
    }
    g[G.scale + j] = along;
    g[G.shift + j] = sum;
    for (let i = 0; i < B; i++) {
      const d = (theta[G.scale + j] / spread[j]) * (dh[i * hidden + j] - sum / B - (h[i * hidden + j] * along) / B);
      g[G.b1 + j] += d;
      for (let k = 0; k < nz; k++) {
        g[G.w1 + j * nz + k] += d * z[i * nz + k];
        dNoise[i * nz + k] += d * theta[G.w1 + j * nz + k];
        dEmbeddings[labels[i] * nz + k] += CLASS_WEIGHT * d * theta[G.w1 + j * nz + k];
      }
    }
  }
  return {theta: g, noise: dNoise, embeddings: dEmbeddings};
}

function generatorWeights(G, random) {  // as torch's layers begin
  const theta = new Float64Array(G.size), uniform = (from, until, inputs) => { for (let i = from; i < until; i++) theta[i] = (2 * random() - 1) / Math.sqrt(inputs); };
  uniform(G.w1, G.scale, G.nz);
  theta.fill(1, G.scale, G.shift);
  uniform(G.w2, G.size, G.hidden);
  return theta;
}

// All that chance decides in FedRevive: noise to probe models with, classes to ask for, latents, and minibatches of the pool.
function draws(G, random, {batch, probes, size, classes = 10}) {
  const noise = (count) => Float64Array.from({length: count}, () => normal(random));
  const chosen = (shares) => { let left = random() * shares.reduce((a, b) => a + b, 0); return Math.max(0, shares.findIndex((share) => (left -= share) < 0)); };
  return {
    probes: () => noise(probes * G.pixels),
    labels: () => Array.from({length: batch}, () => Math.floor(classes * random())),
    latents: () => ({noise: noise(batch * G.nz), embeddings: noise(classes * G.nz)}),
    batches: (pool, proportions) => {
      const byLabel = Array.from({length: classes}, (_, c) => pool.labels.flatMap((label, i) => (label === c ? [i] : [])));
      return proportions.map((shares) => {
        const held = Array.from(shares, (share, c) => (byLabel[c].length ? share : 0)), possible = held.some((share) => share > 0) ? held : byLabel.map((own) => own.length && 1);
        return Array.from({length: size}, () => { const own = byLabel[chosen(possible)]; return own[Math.floor(random() * own.length)]; });
      });
    },
  };
}
