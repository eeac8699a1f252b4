// FedRevive, §2: the staler an update, the more of it gives way to what the latest client models teach on images that a
// generator makes up. Of Eq. 4's three terms the target term alone is here; the other two count 0.1 and 0.003 in the library.
// settings.draws: {probes(), labels(), latents(), batches(pool, proportions)} are all that chance decides.

class FedRevive {
  constructor(x, settings) {
    const usual = {step: 1, sMax: 75, teachers: 8, uploads: 2, probeTemperature: 0.8, every: 10, synthesisSteps: 2, frozenUntil: 50,
      silentUntil: 100, generatorRate: 3e-3, latentRate: 1e-3, meta: 0.2, distillSteps: 10, distillRate: 1e-4, decay: 1e-5};
    Object.assign(this, {x, settings: {...usual, ...settings}, version: 0, order: "after", buffer: []});
    Object.assign(this, {teachers: [], proxies: new Map(), pool: {images: [], labels: []}, theta: settings.theta, latest: null});
  }
  receive(update) {
    const {step, every, frozenUntil, silentUntil, teachers} = this.settings, frozen = this.version < frozenUntil;
    const model = update.start.map((value, i) => value + update.delta[i]);
    this.teachers = [...this.teachers, {client: update.client, x: model}].slice(-teachers);
    this.probe(update.client, model);
    if (!frozen && this.version % every === 0) this.synthesise();
    const beta = frozen ? 0 : this.beta(update.staleness);
    const taught = beta > 0 && this.version > silentUntil && this.pool.labels.length ? this.distilled() : null;
    this.x = this.x.map((value, i) => value + step * ((1 - beta) * update.delta[i] + (taught ? beta * (taught[i] - value) : 0)));
    this.latest = {beta, taught: Boolean(taught)};
    this.version++;
    return true;
  }
  beta(staleness) { return 0.5 * (1 - Math.cos(Math.PI * Math.min(1, staleness / (2 * this.settings.sMax)))); }

  probe(client, model) {  // a model answers noise with the classes that it knows; a client's first uploads count
    const {net, uploads, probeTemperature, draws} = this.settings, known = this.proxies.get(client) ?? {sum: new Float64Array(net.classes), count: 0};
    if (known.count >= uploads) return;
    const probes = draws.probes(), n = probes.length / net.inputs;
    const p = softmax(forward(net, model, probes, Array.from({length: n}, (_, i) => i)).z.map((z) => z / probeTemperature), net.classes);
    p.forEach((value, i) => { known.sum[i % net.classes] += value / n; });
    known.count++;
    this.proxies.set(client, known);
  }
  proportions() { return this.teachers.map(({client}) => { const {sum, count} = this.proxies.get(client); return sum.map((value) => value / count); }); }

  // The teachers' weighted cross entropy with the labels that were asked for, and its derivative by the images.
  target(images, labels) {
    const {net} = this.settings, shares = this.proportions(), B = labels.length, dImages = new Float64Array(images.length);
    const all = Array.from({length: B}, (_, i) => i);
    let loss = 0;
    this.teachers.forEach(({x}, k) => {
      const {a, z} = forward(net, x, images, all), p = softmax(z, net.classes);
      labels.forEach((label, i) => {
        const weight = shares[k][label] / shares.reduce((sum, row) => sum + row[label], 0) / B;
        loss -= weight * Math.log(p[i * net.classes + label]);
        for (let c = 0; c < net.classes; c++) p[i * net.classes + c] = weight * (p[i * net.classes + c] - (c === label ? 1 : 0));
      });
      inputGradient(net, x, a, p, dImages);
    });
    return {loss, dImages};
  }
  synthesise() {
    const {generator: G, draws, net, synthesisSteps, generatorRate, latentRate, meta} = this.settings, labels = draws.labels(), latents = draws.latents();
    let theta = this.theta, best = null, lowest = Infinity;
    const own = {...latents}, adams = {theta: new Adam(G.size, generatorRate, 0.5)};
    for (const name of ["noise", "embeddings"]) adams[name] = new Adam(own[name].length, latentRate, 0.5);
    for (let step = 0; step < synthesisSteps; step++) {
      const made = generate(G, theta, own, labels), {loss, dImages} = this.target(made.images, labels);
      if (loss < lowest) { best = made.images; lowest = loss; }
      const g = generatorGradients(G, theta, made, labels, dImages, net.classes);
      theta = adams.theta.step(theta, g.theta);
      for (const name of ["noise", "embeddings"]) own[name] = adams[name].step(own[name], g[name]);
    }
    this.theta = this.theta.map((value, i) => value + meta * (theta[i] - value));
    this.pool.images.push(...cutInBatches(best, G.pixels));
    this.pool.labels.push(...labels);
  }
  distilled() {  // the global model takes steps towards its teachers, each of which answers its own made-up images
    const {net, draws, distillSteps, distillRate, decay} = this.settings, C = net.classes;
    const drawn = draws.batches(this.pool, this.proportions()), size = drawn[0].length / distillSteps, adam = new Adam(this.x.length, distillRate);
    const answers = this.teachers.map(({x}, k) => softmax(forward(net, x, this.rows(drawn[k]), drawn[k].map((_, i) => i)).z, C));
    let x = this.x;
    for (let step = 0; step < distillSteps; step++) {
      const images = this.rows(drawn.flatMap((row) => row.slice(step * size, (step + 1) * size))), all = Array.from({length: images.length / net.inputs}, (_, i) => i);
      const {a, z} = forward(net, x, images, all), dz = softmax(z, C);
      all.forEach((i) => {
        const k = Math.floor(i / size), row = step * size + (i % size);
        for (let c = 0; c < C; c++) dz[i * C + c] = (dz[i * C + c] - answers[k][row * C + c]) / all.length;
      });
      const g = backward(net, x, images, all, a, dz);
      x = adam.step(x, g.map((value, i) => value + decay * x[i]));
    }
    return x;
  }
  rows(indices) {
    const {net} = this.settings, rows = new Float64Array(indices.length * net.inputs);
    indices.forEach((index, i) => rows.set(this.pool.images[index], i * net.inputs));
    return rows;
  }
}
