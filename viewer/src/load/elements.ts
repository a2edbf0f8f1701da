// The HTML elements that contain the data. They are read while the browser is still loading the
// file: each as soon as it is complete. It is then removed because its text is not needed again.

export class FileElements {
    private whole = document.readyState !== "loading";
    private waiting: (() => void)[] = [];

    constructor() {
        if (this.whole) return;
        const wake = (): void => {
            const woken = this.waiting;
            this.waiting = [];
            for (const resume of woken) resume();
        };
        const observer = new MutationObserver(wake);
        observer.observe(document.body, { childList: true });
        document.addEventListener("DOMContentLoaded", () => {
            this.whole = true;
            observer.disconnect();
            wake();
        });
    }

    /** The element's text, or null if the file ended without it. */
    async take(id: string): Promise<string | null> {
        for (;;) {
            const element = document.getElementById(id);
            // An element's text is complete once the next element exists.
            if (element && (this.whole || element.nextElementSibling)) {
                const text = (element instanceof HTMLTemplateElement ? element.content : element)
                    .textContent;
                element.remove();
                return text;
            }
            if (this.whole) return null;
            await new Promise<void>((resume) => this.waiting.push(resume));
        }
    }
}
