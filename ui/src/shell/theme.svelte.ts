import { store, stored } from './stored';

export type Theme = 'system' | 'light' | 'dark';

class ThemeChoice {
  value = $state<Theme>('system');

  start(): void {
    const theme = stored<Theme>('theme', 'system');
    this.set(['light', 'dark'].includes(theme) ? theme : 'system');
  }

  set(theme: Theme): void {
    this.value = theme;
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    store('theme', theme);
  }
}

export const theme = new ThemeChoice();
