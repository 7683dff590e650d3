/** Listeners: functions of users that are called when something happens. */

/** Wraps a listener: one that fails must not change what it listens to. It warns once. */
export function unbreakable<T>(name: string, listener: (heard: T) => void): (heard: T) => void {
  let warned = false;
  const warn = (error: unknown) => {
    if (warned) return;
    warned = true;
    process.emitWarning(
      `The listener \`${name}\` threw; the limiter continues. Further errors are not printed`,
      {
        code: "ZAEL_LISTENER_FAILED",
        detail: String(error),
      },
    );
  };
  return (heard) => {
    try {
      // A listener may be async although the types forbid it; its error must not end the process.
      const result: unknown = listener(heard);
      if (result instanceof Promise) result.catch(warn);
    } catch (error) {
      warn(error);
    }
  };
}
