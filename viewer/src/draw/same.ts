/** Whether both lists hold the same values. Pictures that depend on nothing else are alike. */
export function same(one: readonly unknown[], other: readonly unknown[]): boolean {
    return one.length === other.length && one.every((value, at) => value === other[at]);
}
