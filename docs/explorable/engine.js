// The arithmetic of the page: a network, clients' training, four servers and the virtual clock. Nothing here draws.
// It is the package's arithmetic in double precision; tests/test_explorable.py feeds both the same run.
"use strict";

const Engine = (() => {
  // --- a network of one hidden layer; parameters are one flat vector in torch's order: W1, b1, W2, b2 ---------------

  function network(inputs, hidden, classes) {
    const w1 = 0, b1 = hidden * inputs, w2 = b1 + hidden, b2 = w2 + classes * hidden;
    return {inputs, hidden, classes, w1, b1, w2, b2, size: b2 + classes};
  }

  // Logits of the samples at `places` of `images` (rows of net.inputs numbers); hidden activations are kept.
  function forward(net, x, images, places) {
    const n = places.length, a = new Float64Array(n * net.hidden), z = new Float64Array(n * net.classes);
    for (let i = 0; i < n; i++) {
      const from = places[i] * net.inputs;
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
  function backward(net, x, images, places, a, dz) {
    const g = new Float64Array(net.size), da = new Float64Array(net.hidden);
    for (let i = 0; i < places.length; i++) {
      const from = places[i] * net.inputs;
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
  function accuracy(net, x, data, places) {
    const {z} = forward(net, x, data.images, places);
    const right = new Float64Array(net.classes), of = new Float64Array(net.classes);
    for (let i = 0; i < places.length; i++) {
      const label = data.labels[places[i]];
      of[label]++;
      if (largest(z, i * net.classes, net.classes) === label) right[label]++;
    }
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    return {all: sum(right) / sum(of), classes: Array.from(right, (value, c) => (of[c] ? value / of[c] : NaN))};
  }

  // A client's training: plain SGD over minibatches (lists of places); what it adds to the model that it was sent.
  function train(net, start, data, batches, rate) {
    const x = Float64Array.from(start);
    for (const places of batches) {
      const {a, z} = forward(net, x, data.images, places), dz = softmax(z, net.classes);
      places.forEach((place, i) => { dz[i * net.classes + data.labels[place]] -= 1; });
      for (let i = 0; i < dz.length; i++) dz[i] /= places.length;
      const g = backward(net, x, data.images, places, a, dz);
      for (let i = 0; i < x.length; i++) x[i] -= rate * g[i];
    }
    return x.map((value, i) => value - start[i]);
  }

  // --- servers: receive(update) returns whether it made a version. -------------------------------------------------
  // An update is {client, delta, start, staleness, samples, receivedAccuracy}.

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

  class FedAsync {
    constructor(x, settings) { Object.assign(this, {x, settings, version: 0, order: "after", buffer: []}); }
    receive(update) {
      const weight = this.settings.mixing / Math.sqrt(1 + update.staleness);
      this.x = this.x.map((value, i) => (1 - weight) * value + weight * (update.start[i] + update.delta[i]));
      this.version++;
      return true;
    }
  }

  // FedEcho, Algorithm 1: the clients' latest predictions on unlabelled images teach the model after each aggregation.
  // settings: distillRate, unlabelled (places), minibatches() → lists of positions in unlabelled; net, data.
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
        const places = rows.map((row) => unlabelled[row]), {a, z} = forward(net, x, data.images, places);
        const dz = softmax(z, C);  // σ(z) less the mixed target
        rows.forEach((row, i) => {
          const top = largest(p, row * C, C);
          for (let c = 0; c < C; c++) {
            dz[i * C + c] = (dz[i * C + c] - weight * p[row * C + c] - (c === top ? 1 - weight : 0)) / rows.length;
          }
        });
        const g = backward(net, x, data.images, places, a, dz);
        const norm = Math.sqrt(g.reduce((sum, value) => sum + value * value, 0)), scale = Math.min(1, clip / norm);
        x = adam.step(x, norm ? g.map((value) => value * scale) : g);
      }
      return x;
    }
  }

  class Adam {
    constructor(size, rate) {
      Object.assign(this, {rate, m: new Float64Array(size), v: new Float64Array(size), count: 0});
    }
    step(x, g) {
      this.count++;
      const {m, v} = this, first = 1 - 0.9 ** this.count, second = 1 - 0.999 ** this.count;
      return x.map((value, i) => {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        return value - (this.rate * (m[i] / first)) / (Math.sqrt(v[i] / second) + 1e-8);
      });
    }
  }

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

  const SERVERS = {fedbuff: FedBuff, fedasync: FedAsync, fedecho: FedEcho, kuiper: Kuiper};

  // --- the virtual clock -------------------------------------------------------------------------------------------
  // hooks: choose(idle) → client, duration(client) → time, batches(client, job) → lists of places.
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
        delta: train(net, job.start, data, this.hooks.batches(job.client, job), this.rate),
        receivedAccuracy: server.order === "burst" ? accuracy(net, job.start, data, part).all : NaN,
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

  return {network, forward, softmax, accuracy, train, SERVERS, Simulation};
})();
if (typeof module !== "undefined") module.exports = Engine;
