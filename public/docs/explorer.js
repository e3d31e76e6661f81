// Shows /openapi.json with Swagger UI. Everything comes from this listener, and "Try it out" asks it alone.

const { SwaggerUIBundle } = window;

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#explorer",
  presets: [SwaggerUIBundle.presets.apis],
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: false,
  // Otherwise the document would be sent to a validator on the internet.
  validatorUrl: null,
  plugins: [tryOnlyThisListener],
});

// Paths with servers of their own are those of other listeners, which the page's policy does not let it ask.
function tryOnlyThisListener() {
  const allowTryItOutFor = () => (state, path) => state.getIn(["json", "paths", path, "servers"]) === undefined;
  return { statePlugins: { spec: { wrapSelectors: { allowTryItOutFor } } } };
}
