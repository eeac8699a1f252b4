// Adam, as torch has it. A step returns the new parameters.
class Adam {
  constructor(size, rate, beta = 0.9) {
    Object.assign(this, {rate, beta, m: new Float64Array(size), v: new Float64Array(size), count: 0});
  }
  step(x, g) {
    this.count++;
    const {m, v, beta} = this, first = 1 - beta ** this.count, second = 1 - 0.999 ** this.count;
    return x.map((value, i) => {
      m[i] = beta * m[i] + (1 - beta) * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      return value - (this.rate * (m[i] / first)) / (Math.sqrt(v[i] / second) + 1e-8);
    });
  }
}
