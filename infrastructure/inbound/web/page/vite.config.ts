import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'

// The policy of the page allows files of its own server only: nothing is inlined.
export default defineConfig({
  plugins: [svelte()],
  base: '/ui/',
  // One script: its compressed size is limited by a test, and a warning about the raw size helps nobody.
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false }, chunkSizeWarningLimit: 1_000 },
  // Tests read the style sheet as text; without this it is empty there.
  test: { css: true },
})
