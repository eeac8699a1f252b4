// FedBuff: the mean of a buffer of updates, times the server learning rate, is added to the model.
// receive(update) returns whether it made a version. An update is {client, delta, start, staleness, samples, receivedAccuracy}.

class FedBuff {
  constructor(x, settings) {
    Object.assign(this, {x, settings, version: 0, order: "before"});
    this.empty();
  }
  empty() {
    this.sum = new Float64Array(this.x.length);
    this.buffer = [];
  }
  receive(update) {
    for (let i = 0; i < this.sum.length; i++) this.sum[i] += update.delta[i];
    this.buffer.push(update);
    return this.buffer.length >= this.settings.buffer && this.flush();
  }
  flush() {
    if (!this.buffer.length) return false;
    const rate = this.settings.step / this.buffer.length;
    this.x = this.after(this.x.map((value, i) => value + rate * this.sum[i]));
    this.version++;
    this.empty();
    return true;
  }
  after(x) { return x; }
}
