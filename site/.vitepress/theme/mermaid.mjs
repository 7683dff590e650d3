import { useData } from "vitepress";
import { defineComponent, h, onMounted, ref, watch } from "vue";

let drawn = 0;

/** Draws a diagram in the browser, again when the reader switches between light and dark. */
export const Mermaid = defineComponent({
  props: { code: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData();
    const svg = ref("");
    const width = ref("100%");
    async function draw() {
      const { default: mermaid } = await import("mermaid");
      const theme = isDark.value ? "dark" : "neutral";
      mermaid.initialize({ startOnLoad: false, theme, fontFamily: "inherit" });
      drawn += 1;
      ({ svg: svg.value } = await mermaid.render(
        `diagram-${drawn}`,
        decodeURIComponent(props.code),
      ));
      const [, natural] = /max-width: ([\d.]+px)/.exec(svg.value) ?? [];
      width.value = natural ?? "100%";
    }
    onMounted(draw);
    watch(isDark, draw);
    return () =>
      h("div", {
        class: "mermaid",
        style: { "--diagram-width": width.value },
        innerHTML: svg.value,
      });
  },
});
