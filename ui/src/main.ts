import { mount } from 'svelte';
import './style/tokens.css';
import './style/base.css';
import './style/controls.css';
import App from './App.svelte';
import { HttpTransport } from './api/http';
import { live } from './api/live.svelte';
import { findToken } from './api/token';
import { useTransport } from './api/transport';
import { WebviewTransport, type Host } from './api/webview';
import { route } from './route/route.svelte';
import { theme } from './shell/theme.svelte';

declare global {
  /** There inside a webview of VS Code, and nowhere else. */
  var acquireVsCodeApi: (() => Host) | undefined;
}

async function start(): Promise<void> {
  theme.start();
  const hasToken = await letIn();
  route.start();
  if (hasToken) {
    live.watchVisibility(document);
    live.start();
  }
  const target = document.getElementById('page');
  if (target) mount(App, { target, props: { hasToken } });
}

async function letIn(): Promise<boolean> {
  if (globalThis.acquireVsCodeApi) {
    useTransport(new WebviewTransport(globalThis.acquireVsCodeApi()));
    return true;
  }
  const token = await findToken();
  useTransport(new HttpTransport(token ?? ''));
  return token !== undefined;
}

void start();
