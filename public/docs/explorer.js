// Shows /openapi.json with Swagger UI. Everything comes from this listener, and "Try it out" asks it alone.

import { wireThemeToggle } from "../app/theme.js";

const { SwaggerUIBundle } = window;
const root = document.documentElement;

wireThemeToggle(document.getElementById("theme-toggle"), showTheme);
showTheme();

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

// Swagger UI knows no colour scheme of the system, only this class.
function showTheme() {
  const isDark = root.dataset.theme === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : root.dataset.theme === "dark";
  root.classList.toggle("dark-mode", isDark);
}
