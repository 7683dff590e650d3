/** Writes the answers of `GET /v1/models` and `/v1/models/{id}`, as OpenAI and Anthropic do. */

import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import type { ListedModel } from "./model-list-request.ts";

/** The API whose shapes a client expects. */
export type ModelsShape = "openai" | "anthropic";

/** Whose models they are. What upstreams say here may name the account at the provider. */
const OWNER = "gateway";

export class ModelsAnswer {
  readonly #models: readonly ListedModel[];
  readonly #unlisted: (id: string) => Promise<ListedModel | undefined>;

  /** `unlisted` finds models that may be used and are on no list. */
  constructor(
    models: readonly ListedModel[],
    unlisted: (id: string) => Promise<ListedModel | undefined>,
  ) {
    this.#models = models;
    this.#unlisted = unlisted;
  }

  /** Returns the body of the list: one page with all models. */
  list(shape: ModelsShape): JsonValue {
    const data = this.#models.map((model) => shaped(model, shape));
    if (shape === "openai") return { object: "list", data };
    const first_id = this.#models[0]?.id ?? null;
    const last_id = this.#models.at(-1)?.id ?? null;
    return { data, has_more: false, first_id, last_id };
  }

  /** Returns the body for one model; `undefined`: there is none that the key may use. */
  async get(id: string, shape: ModelsShape): Promise<JsonValue | undefined> {
    const model = this.#models.find((each) => each.id === id) ?? (await this.#unlisted(id));
    return model === undefined ? undefined : shaped(model, shape);
  }
}

function shaped({ id, label = id, created = 0 }: ListedModel, shape: ModelsShape): JsonValue {
  if (shape === "openai") return { id, object: "model", created, owned_by: OWNER };
  const created_at = new Date(created * 1000).toISOString();
  return { type: "model", id, display_name: label, created_at };
}
