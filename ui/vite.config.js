import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

const here = fileURLToPath(new URL('.', import.meta.url));

// The names of the files are fixed because the program that embeds them, and the extension that
// shows the same page, name them too.
export default defineConfig({
  root: here,
  base: './',
  publicDir: false,
  logLevel: 'warn',
  plugins: [svelte({ configFile: false, compilerOptions: { runes: true } })],
  build: {
    outDir: process.env.TOW_UI_OUT ?? 'dist',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    reportCompressedSize: false,
    // An asset as a `data:` address would count twice: in the script and in memory.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        codeSplitting: false,
        entryFileNames: 'assets/index.js',
        assetFileNames: 'assets/index[extname]',
      },
    },
  },
});
