// The images: scikit-learn's digits, each under a fainter other digit and noise, as the library's overlaid tasks have
// them. The label is that of the stronger digit. Training and test images share no digit.

const OVERLAY = 0.35, NOISE = 0.3, COPIES = 1, HELD_OUT = 150;

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

function overlaidDigits({images, labels, train, mean, std}) {
  const pixels = bytesOf(images), classes = bytesOf(labels), random = stream("overlaid digits"), made = [], of = [];
  const own = train - HELD_OUT, pools = {clients: [0, own, COPIES], server: [own, train, 1], test: [train, classes.length, COPIES]};
  const indices = {};
  for (const [name, [from, until, copies]] of Object.entries(pools)) {
    const first = of.length, size = until - from;
    for (let copy = 0; copy < copies; copy++) {
      for (let i = 0; i < size; i++) {
        const other = from + ((i + 1 + Math.floor(random() * (size - 1))) % size);
        of.push(classes[from + i]);
        for (let k = 0; k < 64; k++) {
          made.push(pixels[64 * (from + i) + k] / 16 + (OVERLAY * pixels[64 * other + k]) / 16 + NOISE * std * normal(random));
        }
      }
    }
    indices[name] = Array.from({length: of.length - first}, (_, i) => first + i);
  }
  const middle = mean * (1 + OVERLAY), spread = std * Math.sqrt(1 + OVERLAY ** 2 + NOISE ** 2);
  return {images: Float64Array.from(made, (value) => (value - middle) / spread), labels: Uint8Array.from(of), ...indices};
}
