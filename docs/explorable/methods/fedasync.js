// FedAsync: each model that arrives is mixed in, the less the staler it is.

class FedAsync {
  constructor(x, settings) { Object.assign(this, {x, settings, version: 0, order: "after", buffer: []}); }
  receive(update) {
    const weight = this.settings.mixing / Math.sqrt(1 + update.staleness);
    this.x = this.x.map((value, i) => (1 - weight) * value + weight * (update.start[i] + update.delta[i]));
    this.version++;
    return true;
  }
}
