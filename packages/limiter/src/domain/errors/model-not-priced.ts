/** The error of a call that a limit in money applies to, and whose model has no price. */

import { ValidationError } from "./errors.ts";

/**
 * A call was refused because its model has no price, and a limit in money applies to it.
 *
 * @example
 * ```ts
 * import { ModelNotPriced } from 'zae-limiter';
 * const error = new ModelNotPriced('my-model');
 * console.log(error.code, error.model); // ZAEL_MODEL_NOT_PRICED my-model
 * ```
 */
export class ModelNotPriced extends ValidationError {
  override readonly code = "ZAEL_MODEL_NOT_PRICED";

  constructor(
    /** The model of the call. */
    readonly model: string,
    /** The currency of the limit; dollars when absent. */
    readonly currency: string = "usd",
  ) {
    const isOther = currency !== "usd";
    const command = `zae-limiter prices set ${model} --input … --output …${isOther ? ` --currency ${currency}` : ""}`;
    const price = isOther ? `price in ${currency}` : "price";
    const reason = `${model} has no ${price}, and a limit in money applies; set one: ${command}`;
    super("model", model, reason);
  }
}
