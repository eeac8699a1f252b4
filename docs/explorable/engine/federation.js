// A federation of devices, some of them slow, and a run of one method on it.

const NET = network(64, 32, 10);
const METHODS = {fedbuff: FedBuff, fedasync: FedAsync, fedecho: FedEcho, kuiper: Kuiper, fedadt: FedAdt, fedrevive: FedRevive};
const USUAL = {
  method: "fedbuff", step: 1, clients: 30, slowClients: 6, slow: 30, flight: 25, buffer: 5, alpha: 0.1, seed: 0,
  rate: 0.2, epochs: 2, batch: 10, unlabelled: 150, labelled: 50, server: {},
};


// What only some servers need. All that chance decides comes from a stream of its own.
const SERVER_SETTINGS = {
  fedecho: ({seed, unlabelled}, data) => {
    const passes = stream(seed, "distillation"), free = data.server.slice(0, unlabelled), order = free.map((_, i) => i);
    return {unlabelled: free, distillRate: 1e-3, minibatches: () => [0, 1].flatMap(() => cutInBatches(shuffled(order, passes), 25))};
  },
  fedadt: ({seed, labelled, rate}, data) => {
    const passes = stream(seed, "distillation"), own = digitsAlike(data, labelled), order = own.map((_, i) => i);
    return {labelled: own, distillRate: rate, minibatches: () => cutInBatches(shuffled(order, passes), 10)};
  },
  fedrevive: ({seed}, data) => {
    const G = generator(16, 48, NET.inputs, ...rangeOf(data)), random = stream(seed, "made up"), distillSteps = 5;
    return {sMax: 19, every: 10, synthesisSteps: 20, frozenUntil: 50, silentUntil: 100, distillSteps, distillRate: 1e-3, generatorRate: 1e-2, latentRate: 1e-2,
      generator: G, theta: generatorWeights(G, random), draws: draws(G, random, {batch: 20, probes: 64, size: 8 * distillSteps})};
  },
};
const digitsAlike = (data, count) => Array.from({length: 10}, (_, digit) => data.server.filter((index) => data.labels[index] === digit).slice(0, count / 10)).flat();
function rangeOf(data) {
  const values = data.clients.flatMap((index) => Array.from(data.images.subarray(index * NET.inputs, (index + 1) * NET.inputs)));
  return [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
}

// Each digit's images cut over the devices by Dirichlet(alpha), so that a small alpha gives a device few digits.
function partition({clients, alpha, batch, seed}, data) {
  const random = stream(seed, "partition"), parts = Array.from({length: clients}, () => []);
  for (let digit = 0; digit < 10; digit++) {
    const indices = shuffled(data.clients.filter((index) => data.labels[index] === digit), random);
    const shares = parts.map(() => gamma(alpha, random) + 1e-12), sum = shares.reduce((a, b) => a + b);
    let reached = 0, from = 0;
    shares.forEach((share, client) => {
      reached += share / sum;
      const until = client === clients - 1 ? indices.length : Math.floor(reached * indices.length);
      parts[client].push(...indices.slice(from, until));
      from = until;
    });
  }
  for (const part of parts) {  // a batch of images at least
    while (part.length < batch) part.push(parts.reduce((a, b) => (b.length > a.length ? b : a)).pop());
  }
  return parts;
}

function firstWeights(seed) {  // uniform, as torch's linear layers begin
  const random = stream(seed, "weights"), x = new Float64Array(NET.size);
  x.forEach((_, i) => { x[i] = (2 * random() - 1) / Math.sqrt(i < NET.w2 ? NET.inputs : NET.hidden); });
  return x;
}

class Run {
  constructor(settings, data) {
    this.settings = {...USUAL, ...settings};
    this.data = data;
    this.parts = partition(this.settings, data);
    this.server = this.makeServer();
    this.clock = new Simulation({net: NET, data, parts: this.parts, server: this.server,
      concurrency: this.settings.flight, rate: this.settings.rate, hooks: this.hooks()});
    Object.assign(this, {now: 0, done: [], curve: [], heardAt: new Map(), last: null});
    this.test();
  }
  makeServer() {
    const {method, seed, step, buffer, server} = this.settings;
    const common = {net: NET, data: this.data, buffer, step, mixing: Math.min(1, step)};
    return new METHODS[method](firstWeights(seed), {...common, ...SERVER_SETTINGS[method]?.(this.settings, this.data), ...server});
  }
  hooks() {
    const {seed, epochs, batch} = this.settings, pick = stream(seed, "choice");
    return {
      choose: (idle) => idle[Math.floor(pick() * idle.length)],
      duration: (client, job) => this.duration(client, stream(seed, "duration", client, job.number)()),
      batches: (client, job) => {
        const random = stream(seed, "batches", client, job.number);
        return Array.from({length: epochs}, () => cutInBatches(shuffled(this.parts[client], random), batch)).flat();
      },
    };
  }
  duration(client, u) { return this.isSlow(client) ? this.settings.slow * (1 + 0.5 * u) : 1 + u; }
  isSlow(client) { return client >= this.settings.clients - this.settings.slowClients; }

  test() {
    this.last = accuracy(NET, this.server.x, this.data, this.data.test);
    this.curve.push([this.clock.time, this.last.all]);
  }
  // Go on to a time, or until `until()` holds after an arrival, or as far as `budget` milliseconds allow.
  // Returns true where it stopped because the event came.
  advance(time, {budget = Infinity, until = () => false} = {}) {
    const begun = performance.now();
    for (;;) {
      if (Math.min(...this.clock.jobs.map((job) => job.until)) > time) { this.now = time; return false; }
      const {update, job, made} = this.clock.next();
      this.now = job.until;
      this.latest = {update, job, made};
      this.done.push({client: job.client, from: job.from, until: job.until, version: job.version, staleness: update.staleness,
        weight: update.samples * (1 - update.receivedAccuracy), samples: update.samples, madeVersion: made, into: this.server.version - made});
      this.heardAt.set(job.client, this.server.version);
      if (made) this.test();
      if (until(this)) return true;
      if (performance.now() - begun > budget) return false;
    }
  }
  // Mean of the latest tests up to a time, in percent: one test swings too much to be a result.
  level(time = Infinity, tests = 20) {
    const values = this.curve.filter(([at]) => at <= time).slice(-tests).map(([, value]) => value);
    return (100 * values.reduce((a, b) => a + b, 0)) / values.length;
  }
  early(time) { return this.level(time, Infinity); }  // mean of all tests up to a time, in percent
}
