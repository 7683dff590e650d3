/** The only loop that talks to the store: decides the next step and runs it, until done. */

/** `undefined`: there is nothing more to do. */
export type Decide<Step> = () => readonly Step[] | undefined;

/** Does one step; `undefined` when that took no time. */
export type Perform<Step> = (step: Step) => Promise<void> | undefined;

export async function drive<Step>(decide: Decide<Step>, perform: Perform<Step>): Promise<void> {
  for (let steps = decide(); steps !== undefined; steps = decide()) {
    for (const step of steps) {
      const done = perform(step);
      if (done !== undefined) await done;
    }
  }
}
