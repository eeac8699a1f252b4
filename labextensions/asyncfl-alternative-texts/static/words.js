// JupyterLab shows the picture of an output without its alternative text, so a screen reader has nothing to say of it.
// The words are in the metadata of the cell or of the output. A drawing brings its own as plain text.
// Controls that were saved need a kernel; until their cell is run, the picture that was saved with them stands there.
(() => {
  const PICTURES = ":is(.jp-RenderedImage, .jp-RenderedSVG) img:not([alt])";
  const CONTROLS = ".jp-OutputArea-output.jupyter-widgets";
  const NO_KERNEL = "Error displaying widget: model not found";

  const shownBy = (notebook, node) => {
    const holds = (widget) => widget.node.contains(node);
    const cell = notebook.widgets.find(holds);
    const output = cell?.model.outputs?.get(cell.outputArea.widgets.findIndex(holds));
    if (!output) return {};
    const { data, metadata } = output;
    return { png: data["image/png"], words: cell.model.getMetadata("alt") || metadata["image/png"]?.alt || data["text/plain"] };
  };

  const describe = (notebook) => {
    for (const controls of notebook.node.querySelectorAll(CONTROLS)) {
      if (controls.textContent !== NO_KERNEL) continue;
      const { png, words } = shownBy(notebook, controls);
      if (!png) continue;
      const picture = Object.assign(new Image(), { src: `data:image/png;base64,${png}`, alt: words });
      picture.style.maxWidth = "100%";
      controls.replaceChildren(picture);
    }
    for (const picture of notebook.node.querySelectorAll(PICTURES)) {
      const { words } = shownBy(notebook, picture);
      if (words) picture.alt = words;
    }
  };

  const createNew = ({ content }) => {
    new MutationObserver(() => describe(content)).observe(content.node, { childList: true, subtree: true });
  };

  const plugin = {
    id: "asyncfl-alternative-texts:plugin",
    autoStart: true,
    activate: (app) => void app.docRegistry.addWidgetExtension("Notebook", { createNew }),
  };
  // As a bundler writes it: without __esModule, JupyterLab takes the module itself for the plugin, and does not start.
  const module = { __esModule: true, default: plugin };
  (window._JUPYTERLAB ??= {})["asyncfl-alternative-texts"] = { init: () => {}, get: async () => () => module };
})();
