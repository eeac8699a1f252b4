// KUIPER, Algorithm 1: a burst's models, weighed by samples and by the error of the model that each client received.
class Kuiper {
  constructor(x, settings) {
    Object.assign(this, {x, settings, version: 0, order: "burst"});
    this.empty();
  }
  empty() {
    this.models = new Float64Array(this.x.length);
    this.kept = this.staleness = 0;
    this.buffer = [];
  }
  receive(update) {
    const weight = update.samples * (1 - update.receivedAccuracy);
    for (let i = 0; i < this.models.length; i++) this.models[i] += weight * (update.start[i] + update.delta[i]);
    this.kept += weight;
    this.staleness += update.staleness;
    this.buffer.push(update);
    return this.buffer.length >= this.settings.buffer && this.flush();
  }
  flush() {
    if (!this.buffer.length) return false;
    const rate = this.settings.mixing / Math.sqrt(1 + this.staleness / this.buffer.length);
    if (this.kept) this.x = this.x.map((value, i) => (1 - rate) * value + (rate * this.models[i]) / this.kept);
    this.version++;
    this.empty();
    return true;
  }
}
