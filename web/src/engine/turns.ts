// Answers a Worker's requests one by one. An answer that cannot be sent is an error like any other, and the next request is
// answered.
export const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

export function answerInTurn<R extends { id: number }>(
    answer: (request: R) => Promise<unknown>,
    transferOf: (found: unknown) => ArrayBuffer[],
    told: (error: unknown) => { error: string; fatal?: boolean } = (error) => ({ error: textOf(error) }),
): void {
    let last: Promise<void> = Promise.resolve();
    self.addEventListener("message", ({ data }: MessageEvent<R>) => {
        last = last.then(async () => {
            try {
                const found = await answer(data);
                self.postMessage({ id: data.id, answer: found }, { transfer: transferOf(found) });
            } catch (error) {
                self.postMessage({ id: data.id, ...told(error) });
            }
        });
    });
}
