import "./tokens.css";
import "./app.css";
import "./transcript.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { app } from "./lib/app.svelte";

if (import.meta.env.DEV && !("__TAURI_INTERNALS__" in window)) {
  const { play } = await import("./lib/demo");
  play(location.hash.slice(1));
}

mount(App, { target: document.getElementById("app")! });
void app.start();
