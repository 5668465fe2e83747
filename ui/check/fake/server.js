import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { CALLS } from './calls.js';
import { CLUSTER_VERBS } from './cluster-verbs.js';
import { DATA_VERBS } from './data-verbs.js';
import { SCRATCH_VERBS } from './scratch-verbs.js';
import { Stream } from './stream.js';
import { SUBMIT_VERBS } from './submit-verbs.js';
import { TUNNEL_VERBS } from './tunnel-verbs.js';
import { Refused, VERBS } from './verbs.js';
import { World } from './world.js';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css' };
const ALIVE_MS = 5000;
const MORE_VERBS = { ...CLUSTER_VERBS, ...DATA_VERBS, ...TUNNEL_VERBS, ...SCRATCH_VERBS, ...SUBMIT_VERBS };

/** Starts a fake `tow ui`. `faults` can be changed while it runs: a call waits for its promise in `holds`. */
export async function startFake({ dist, port = 0, token = 'fake-token', ...options }) {
  const world = new World(options);
  const faults = { delayMs: 0, refuse: null, holds: null };
  const open = new Set();
  const downloads = new Map();
  const calls = [];
  const context = { world, open, downloads, port: () => server.address().port };

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      if (!response.headersSent) fail(response, 500, { error: 'bug', message: String(error), hints: [], exit_code: 127 });
      else response.destroy();
    });
  });

  async function answer(request, response) {
    const path = new URL(request.url, 'http://localhost').pathname;
    if (path.startsWith('/download/')) return download(path, response);
    if (request.method !== 'POST') return file(path, response);
    const args = JSON.parse((await body(request)) || '{}');
    if (request.headers['x-towline-token'] !== token) {
      return fail(response, 401, { error: 'refused', message: 'the token is wrong', hints: [], exit_code: 123 });
    }
    const call = path.slice('/api/'.length);
    const asked = { call, args, hasEnded: false };
    calls.push(asked);
    if (faults.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, faults.delayMs));
    await faults.holds?.[call];
    if (faults.refuse?.[call]) return fail(response, 400, faults.refuse[call]);
    if (call === 'events') return stream(request, response, args);
    const does = CALLS[call] ?? VERBS[call] ?? MORE_VERBS[call];
    if (!does) return fail(response, 404, { error: 'usage', message: `no call \`${call}\``, hints: [], exit_code: 120 });
    const isStream = request.headers.accept?.includes('event-stream');
    // What a verb says before it is done. It may ask whether anybody still listens.
    const tell = (reply) => {
      if (!isStream) return;
      if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify(reply)}\n\n`);
    };
    tell.isHeard = () => !response.destroyed;
    try {
      const done = await does(CALLS[call] ? context : world, args, tell);
      if (!isStream) return json(response, 200, done);
      tell({ done });
      response.end();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (!response.headersSent) return fail(response, 400, error.failure);
      tell({ error: error.failure });
      response.end();
    } finally {
      asked.hasEnded = true;
    }
  }

  function stream(request, response, args) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    const send = (item) => response.write(`data: ${JSON.stringify({ item })}\n\n`);
    const events = new Stream(world, args, send);
    const timer = setInterval(() => send({ item: 'alive', now: new Date(world.now()).toISOString() }), ALIVE_MS);
    const entry = { events, response };
    open.add(entry);
    response.on('close', () => {
      clearInterval(timer);
      events.end();
      open.delete(entry);
    });
  }

  async function file(path, response) {
    const name = path === '/' ? 'index.html' : normalize(path).slice(1);
    try {
      const bytes = await readFile(join(dist, name));
      const headers = { 'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream', 'Cache-Control': 'no-cache' };
      response.writeHead(200, { ...headers, 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff' });
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  }

  function download(path, response) {
    const content = downloads.get(path);
    downloads.delete(path);
    if (content === undefined) return response.writeHead(404).end();
    response.writeHead(200, { 'Content-Disposition': `attachment; filename="${content.name}"` });
    return response.end(content.bytes);
  }

  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return {
    world,
    faults,
    calls,
    origin,
    token,
    address: (rest = '/runs') => `${origin}/#token=${token}&${rest}`,
    /** Sends an item on every open stream. */
    tell: (item) => [...open].forEach(({ events }) => events.send(item)),
    /** Breaks every open stream in the middle. */
    dropStreams: () => [...open].forEach(({ response }) => response.destroy()),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

export function keepForDownload(downloads, name, bytes) {
  const path = `/download/${randomBytes(8).toString('hex')}`;
  downloads.set(path, { name, bytes });
  return { path };
}

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}

function json(response, status, value) {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(value));
}

function fail(response, status, failure) {
  json(response, status, failure);
}
