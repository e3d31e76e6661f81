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
  requestInterceptor(request) {
    // The page's policy would stop it too, without a word that helps.
    if (new URL(request.url, location.href).origin !== location.origin) {
      throw new Error(`this page may ask its own listener only; send it yourself, to ${request.url}`);
    }
    return request;
  },
});
