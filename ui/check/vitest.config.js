import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte({ configFile: false, compilerOptions: { runes: true } })],
  // Without it Svelte's half for servers is taken.
  resolve: { conditions: ['browser'] },
  server: { fs: { allow: ['..'] } },
  test: {
    include: ['unit/**/*.test.ts', 'components/**/*.test.ts'],
    environment: 'jsdom',
    css: false,
    pool: 'threads',
    maxWorkers: 1,
  },
});
