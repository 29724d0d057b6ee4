// How fast pods get nodes, and how long they wait.
import { ask } from "./client";
import { chart } from "./charts";
import { fill, h } from "./dom";
import { age, duration } from "./format";
import { tile } from "./health";

interface Answer {
  now: number;
  slotSeconds: number;
  maxSlots: number;
  slots: [number, number, number, number][];
  recent: { seconds: number; scheduled: number; p50: number; p99: number };
  stages: [string, number][];
  oldest?: string;
}

export class Scheduler {
  readonly element = h("section", { class: "view scheduler" });
  private running = false;

  refresh(): void {
    if (this.running) return;
    this.running = true;
    ask<Answer>("scheduler").then((answer) => this.show(answer))
      .catch((error: unknown) => fill(this.element, h("p", { class: "failed" }, error instanceof Error ? error.message : String(error))))
      .finally(() => (this.running = false));
  }

  private show(answer: Answer): void {
    const to = answer.now;
    const from = to - answer.slotSeconds * answer.maxSlots;
    const { recent } = answer;
    const waits = (seconds: number) => (recent.scheduled ? (seconds === 0 ? "< 1s" : duration(seconds)) : "–");
    fill(this.element,
      h("div", { class: "tiles" },
        tile(`pods scheduled in ${recent.seconds / 60} min`, recent.scheduled),
        tile("wait, half of the pods", waits(recent.p50)),
        tile("wait, 99 of 100 pods", waits(recent.p99)),
        ...answer.stages.map(([name, number]) => tile(name.toLowerCase(), number)),
        h("div", { class: "tile" }, h("b", {}, answer.oldest ? age(answer.oldest) : "–"), h("span", {}, "oldest pod without a node"))),
      h("div", { class: "charts" },
        chart({
          title: `Pods scheduled per ${answer.slotSeconds} s`, unit: "pods", from, to, step: answer.slotSeconds, bars: true,
          series: [{ name: "scheduled", className: "scheduled", points: answer.slots.map((slot) => [slot[0], slot[1]]) }],
        }),
        chart({
          title: "Wait from creation to node, in seconds", unit: "s", from, to, step: answer.slotSeconds,
          series: [
            { name: "99 of 100", className: "p99", points: answer.slots.map((slot) => [slot[0], slot[3]]) },
            { name: "half", className: "p50", points: answer.slots.map((slot) => [slot[0], slot[2]]) },
          ],
        })),
      h("p", { class: "muted" }, "From the times in the pods, so it works with any scheduler. Waits are whole seconds."));
  }
}
