/** An item as the stream shows it. */

import type { AttributeValue as StreamValue } from "@aws-sdk/client-dynamodb-streams";
import { decodeItem } from "../attribute-value.ts";
import type { Item } from "../item.ts";

type Attributes = Record<string, StreamValue>;

/** Absent before an item was created and after it was deleted. */
export function decodeImage(image: Attributes | undefined): Item | undefined {
  return image === undefined ? undefined : decodeItem(withMaps(image));
}

function withMaps(attributes: Attributes): Attributes {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, withMap(value)]),
  );
}

/** DynamoDB Local leaves out the type of an empty map, and nothing else has none. */
function withMap(value: StreamValue): StreamValue {
  if (value.M !== undefined) return { M: withMaps(value.M) };
  if (value.L !== undefined) return { L: value.L.map(withMap) };
  return Object.values(value).some((content) => content !== undefined) ? value : { M: {} };
}
