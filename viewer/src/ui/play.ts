// Plays the window: the cursor moves from its place to the right edge. With reduced motion there is
// no animation, and each call moves the cursor by one step.
import { byId } from "./dom";
import type { PageView } from "./view";

const wholeWindowMs = 12_000;
const steps = 20;

export class Player {
    private frame = 0;
    private last = 0;

    constructor(private readonly page: PageView) {
        byId("play").addEventListener("click", () => this.toggle());
        document.addEventListener("pointerdown", (event) => {
            if (event.target !== byId("play")) this.stop();
        });
    }

    toggle(): void {
        if (this.frame !== 0) {
            this.stop();
            return;
        }
        const { t0, t1, cursor } = this.page.view;
        const from = cursor >= t1 - 1 || cursor < t0 ? t0 : cursor;
        if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
            this.page.change({ cursor: Math.min(t1, from + (t1 - t0) / steps) });
            this.page.say("moved one step, because the system asks for reduced motion");
            return;
        }
        this.page.change({ cursor: from });
        this.last = performance.now();
        byId("play").textContent = "pause";
        byId("play").setAttribute("aria-pressed", "true");
        let at = from;
        const tick = (now: number): void => {
            const { t0: left, t1: right } = this.page.view;
            at += ((now - this.last) / wholeWindowMs) * (right - left);
            this.last = now;
            this.page.change({ cursor: Math.min(at, right) });
            if (at >= right) this.stop();
            else this.frame = requestAnimationFrame(tick);
        };
        this.frame = requestAnimationFrame(tick);
    }

    stop(): void {
        if (this.frame === 0) return;
        cancelAnimationFrame(this.frame);
        this.frame = 0;
        byId("play").textContent = "play";
        byId("play").setAttribute("aria-pressed", "false");
    }
}
