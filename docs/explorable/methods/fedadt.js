// FedADT, Eqs. 7 and 8: a stale model takes a pass over the server's few labelled images before it is mixed in. The
// labels teach it, and so does the global model; the teacher's share α̃ grows with the version.
// settings: labelled (indices), minibatches() → lists of positions in labelled; distillRate, 0 for FedAsync with mixing 1.

class FedAdt {
  constructor(x, settings) { Object.assign(this, {x, settings, version: 0, order: "after", buffer: [], latest: null}); }
  receive(update) {
    const model = update.start.map((value, i) => value + update.delta[i]), weight = 1 / Math.sqrt(1 + update.staleness);
    const taught = update.staleness > 1 && this.settings.distillRate ? this.distilled(model) : model;
    this.latest = {global: this.x, model, taught};
    this.x = this.x.map((value, i) => (1 - weight) * value + weight * taught[i]);
    this.version++;
    return true;
  }
  teacherShare() {
    const {low = 0.2, high = 0.6, versions = 1000} = this.settings;
    return low + (high - low) * Math.min(1, this.version / versions);
  }
  distilled(model) {
    const {net, data, labelled, distillRate, temperature = 3} = this.settings, C = net.classes, share = this.teacherShare();
    const heated = (z) => softmax(z.map((value) => value / temperature), C);
    const teacher = heated(forward(net, this.x, data.images, labelled).z), x = Float64Array.from(model);
    for (const rows of this.settings.minibatches()) {
      const indices = rows.map((row) => labelled[row]), {a, z} = forward(net, x, data.images, indices);
      const warm = heated(z), dz = softmax(z, C);
      rows.forEach((row, i) => {
        for (let c = 0; c < C; c++) {
          const soft = (warm[i * C + c] - teacher[row * C + c]) / temperature;
          const hard = dz[i * C + c] - (c === data.labels[labelled[row]] ? 1 : 0);
          dz[i * C + c] = (share * soft + (1 - share) * hard) / rows.length;
        }
      });
      const g = backward(net, x, data.images, indices, a, dz);
      for (let i = 0; i < x.length; i++) x[i] -= distillRate * g[i];
    }
    return x;
  }
}
