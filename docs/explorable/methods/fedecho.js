// FedEcho, Algorithm 1: the clients' latest predictions on unlabelled images teach the model after each aggregation.
// settings: distillRate, unlabelled (indices), minibatches() → lists of positions in unlabelled; net, data.
class FedEcho extends FedBuff {
  constructor(x, settings) {
    super(x, settings);
    this.logits = new Map();  // client → Float64Array, samples × classes
  }
  receive(update) {
    const {net, data, unlabelled} = this.settings, model = update.start.map((value, i) => value + update.delta[i]);
    this.logits.set(update.client, forward(net, model, data.images, unlabelled).z);
    return super.receive(update);
  }
  teacher() {
    const mean = new Float64Array(this.settings.unlabelled.length * this.settings.net.classes);
    for (const z of this.logits.values()) for (let i = 0; i < mean.length; i++) mean[i] += z[i];
    return softmax(mean.map((value) => value / this.logits.size), this.settings.net.classes);
  }
  after(x) {
    const {net, data, unlabelled, distillRate, low = 0.2, high = 0.8, clip = 5} = this.settings, C = net.classes;
    const p = this.teacher(), adam = new Adam(x.length, distillRate);
    for (const rows of this.settings.minibatches()) {
      let share = 0;
      for (const row of rows) {
        for (let c = 0; c < C; c++) { const q = p[row * C + c]; if (q > 0) share -= q * Math.log(q); }
      }
      share /= Math.log(C) * rows.length;
      const weight = share * high + (1 - share) * low;
      const indices = rows.map((row) => unlabelled[row]), {a, z} = forward(net, x, data.images, indices);
      const dz = softmax(z, C);  // σ(z) less the mixed target
      rows.forEach((row, i) => {
        const top = largest(p, row * C, C);
        for (let c = 0; c < C; c++) {
          dz[i * C + c] = (dz[i * C + c] - weight * p[row * C + c] - (c === top ? 1 - weight : 0)) / rows.length;
        }
      });
      const g = backward(net, x, data.images, indices, a, dz);
      const norm = Math.sqrt(g.reduce((sum, value) => sum + value * value, 0)), scale = Math.min(1, clip / norm);
      x = adam.step(x, norm ? g.map((value) => value * scale) : g);
    }
    return x;
  }
}
