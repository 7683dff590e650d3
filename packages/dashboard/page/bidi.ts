/**
 * Text from elsewhere may contain characters that turn the direction of what follows around, so that
 * a name reads as another one. Everything that the page draws passes here: they are shown as
 * `\\u202e`, as on the command line.
 */

import { type ComponentChildren, options, type VNode } from "preact";
import { withoutBidi } from "./format.ts";

/** Makes every element show its texts so; a field that is edited keeps its value. */
export function showBidi(): void {
  const before = options.vnode;
  options.vnode = (vnode: VNode) => {
    const { props, type } = vnode as VNode<{ children?: ComponentChildren }>;
    if (typeof type === "string" && props.children != null) props.children = shown(props.children);
    before?.(vnode);
  };
}

function shown(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return withoutBidi(children);
  return Array.isArray(children) ? children.map(shown) : children;
}
