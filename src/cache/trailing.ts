/** Work that only has to be done after the last who asked for it: one is under way, and one more waits, for all. */
export class Trailing<T> {
  readonly #underWay = new Map<string, { readonly done: Promise<T>; next: Promise<T> | undefined }>();

  /** @param work begun after this call; *never* rejects. @returns what it comes to. */
  run(key: string, work: () => Promise<T>): Promise<T> {
    const underWay = this.#underWay.get(key);
    if (underWay === undefined) return this.#begin(key, work);
    underWay.next ??= underWay.done.then(() => this.#begin(key, work));
    return underWay.next;
  }

  #begin(key: string, work: () => Promise<T>): Promise<T> {
    const underWay = { done: work(), next: undefined };
    this.#underWay.set(key, underWay);
    void underWay.done.then(() => {
      if (underWay.next === undefined) this.#underWay.delete(key);
    });
    return underWay.done;
  }
}
