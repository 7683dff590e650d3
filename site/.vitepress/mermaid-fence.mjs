/** Renders fences marked `mermaid` as diagrams; on GitHub they are diagrams without help. */
export function mermaid(markdown) {
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index];
    if (info.trim() !== "mermaid") return fence(tokens, index, ...rest);
    return `<Mermaid code="${encodeURIComponent(content)}" />`;
  };
}
