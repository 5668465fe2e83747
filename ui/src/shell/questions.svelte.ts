export type Question = {
  title: string;
  text?: string;
  /** What is affected, by name. */
  items?: string[];
  confirm: string;
  isDangerous?: boolean;
  /** Asks for a text instead of yes or no. */
  input?: { label: string; value?: string; placeholder?: string };
};

type Asked = Question & { resolve: (answer: string | null) => void };

class Questions {
  asked = $state.raw<Asked | null>(null);

  /** The text that was entered (empty where none is asked for), or null if it was refused. */
  ask(question: Question): Promise<string | null> {
    this.asked?.resolve(null);
    return new Promise((resolve) => {
      this.asked = { ...question, resolve };
    });
  }

  answer(answer: string | null): void {
    const asked = this.asked;
    this.asked = null;
    asked?.resolve(answer);
  }
}

export const questions = new Questions();
