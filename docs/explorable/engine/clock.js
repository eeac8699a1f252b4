// The virtual clock: who trains, which report arrives next, and which model a client is sent.

// blind: nobody trains; who arrives when is the same, and there at once.
// hooks: choose(idle) → client, duration(client) → time, batches(client, job) → lists of indices.
class Simulation {
  constructor({net, data, parts, server, concurrency, rate, hooks}) {
    Object.assign(this, {net, data, parts, server, concurrency, rate, hooks});
    Object.assign(this, {time: 0, jobs: [], waiting: [], dispatched: 0, arrivals: 0});
    this.refill();
  }
  idle() {
    const busy = new Set([...this.jobs.map((job) => job.client), ...this.waiting]);
    return this.parts.map((_, client) => client).filter((client) => !busy.has(client));
  }
  dispatch(client) {
    const {x, version} = this.server, job = {client, start: x, version, from: this.time, number: this.dispatched++};
    job.until = this.time + this.hooks.duration(client, job);
    this.jobs.push(job);
  }
  refill() {  // as many idle clients as there is room for
    for (let idle = this.idle(); this.jobs.length + this.waiting.length < this.concurrency && idle.length; idle = this.idle()) {
      this.dispatch(this.hooks.choose(idle));
    }
  }
  next() {  // the next report arrives; returns {update, job, made}
    const job = this.jobs.reduce((a, b) => (b.until < a.until || (b.until === a.until && b.number < a.number) ? b : a));
    this.jobs = this.jobs.filter((other) => other !== job);
    this.time = job.until;
    this.arrivals++;
    const {net, data, server} = this, part = this.parts[job.client];
    const update = {
      client: job.client, start: job.start, samples: part.length, staleness: server.version - job.version,
      delta: this.blind ? new Float64Array(net.size) : train(net, job.start, data, this.hooks.batches(job.client, job), this.rate),
      receivedAccuracy: server.order === "burst" && !this.blind ? accuracy(net, job.start, data, part).all : NaN,
    };
    if (server.order === "before") this.refill();  // on the model before this report counts
    if (server.order === "burst") this.waiting.push(job.client);
    let made = server.receive(update);
    if (server.order === "burst") {
      if (!made && !this.jobs.length) made = server.flush();  // nobody is left who could fill the burst
      if (made) {
        const members = this.waiting;
        this.waiting = [];
        for (const client of members) if (this.jobs.length < this.concurrency) this.dispatch(client);
      }
    }
    this.refill();
    return {update, job, made};
  }
}
