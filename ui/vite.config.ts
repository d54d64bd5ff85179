import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  resolve: {
    // The parser's browser build decodes entities through innerHTML, which Trusted Types refuse; this one uses a table.
    alias: {
      "decode-named-character-reference": fileURLToPath(
        new URL("./node_modules/decode-named-character-reference/index.js", import.meta.url),
      ),
    },
    conditions: mode === "test" ? ["browser"] : undefined,
  },
  clearScreen: false,
  server: { host: "127.0.0.1", port: 5173, strictPort: true },
  build: {
    target: ["es2022", "safari16.4"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
  test: {
    environment: "jsdom",
    // Style sheets are read as text by the tests.
    css: true,
    include: ["tests/**/*.test.ts"],
    setupFiles: ["tests/setup.ts"],
    restoreMocks: true,
    // A busy machine is no failure.
    testTimeout: 60_000,
  },
}));
