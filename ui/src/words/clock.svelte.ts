const TICK_MS = 1000;

/** The time, as the machine has it that answers. Texts that read `now` change once a second. */
class Clock {
  now = $state(Date.now());
  #ahead = 0;

  start(): () => void {
    const timer = setInterval(() => this.tick(), TICK_MS);
    return () => clearInterval(timer);
  }

  tick(): void {
    this.now = Date.now() + this.#ahead;
  }

  /** Takes over the other machine's time. What differs by less than a second is the way. */
  isNow(time: string): void {
    const ahead = Date.parse(time) - Date.now();
    this.#ahead = Math.abs(ahead) < 1000 ? 0 : ahead;
    this.tick();
  }
}

export const clock = new Clock();
