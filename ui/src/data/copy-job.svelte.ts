import { Task } from '../api/task.svelte';
import type { Transfer, Transfers } from '../api/types';
import type { CopyCall } from './copies';

/** A copy of one call or of several, first as a plan and then for real. */
export class CopyJob {
  /** What would be done, or what was done. */
  plan = $state.raw<Transfer[] | null>(null);
  done = $state.raw<Transfer[] | null>(null);
  step = $state(0);
  steps = $state(0);
  wasCancelled = $state(false);
  readonly task = new Task<Transfers>();

  get isRunning(): boolean {
    return this.task.isRunning;
  }

  async look(calls: CopyCall[]): Promise<void> {
    this.done = null;
    this.plan = null;
    this.plan = await this.#all(calls, { dry_run: true });
  }

  async start(calls: CopyCall[]): Promise<boolean> {
    // What would be removed was shown with the plan, and agreed to.
    this.done = await this.#all(calls, { yes: true });
    return this.done !== null;
  }

  cancel(): void {
    this.wasCancelled = true;
    this.task.cancel();
  }

  async #all(calls: CopyCall[], more: { dry_run: true } | { yes: true }): Promise<Transfer[] | null> {
    const transfers: Transfer[] = [];
    this.wasCancelled = false;
    this.steps = calls.length;
    for (const [at, { verb, args }] of calls.entries()) {
      this.step = at + 1;
      const answer = await this.task.run(verb, { ...args, ...more });
      if (answer === null || this.wasCancelled) return null;
      transfers.push(...(answer.transfers ?? []));
    }
    return transfers;
  }
}
