// Row heights and the sums over them (a Fenwick tree): where a row begins, and which row lies at a place.

export class Heights {
  private size: Float64Array = new Float64Array(0);
  private tree: Float64Array = new Float64Array(1);
  length = 0;

  /** Begins anew with `n` rows. */
  reset(n: number, height: (index: number) => number): void {
    const room = Math.max(64, n * 2);
    this.size = new Float64Array(room);
    for (let i = 0; i < n; i++) this.size[i] = height(i);
    this.length = n;
    this.build();
  }

  private build(): void {
    const n = this.size.length;
    const tree = new Float64Array(n + 1);
    for (let i = 1; i <= n; i++) {
      tree[i]! += this.size[i - 1]!;
      const parent = i + (i & -i);
      if (parent <= n) tree[parent]! += tree[i]!;
    }
    this.tree = tree;
  }

  get(index: number): number {
    return this.size[index] ?? 0;
  }

  /** Returns by how much the row grew. */
  set(index: number, height: number): number {
    const by = height - this.size[index]!;
    if (by === 0) return 0;
    this.size[index] = height;
    for (let i = index + 1; i < this.tree.length; i += i & -i) this.tree[i]! += by;
    return by;
  }

  push(height: number): void {
    if (this.length === this.size.length) {
      const old = this.size;
      this.size = new Float64Array(Math.max(64, old.length * 2));
      this.size.set(old);
      this.build();
    }
    this.set(this.length++, height);
  }

  /** Rows put in front; returns their sum. */
  unshift(n: number, height: (index: number) => number): number {
    const old = this.size.slice(0, this.length);
    let sum = 0;
    this.reset(n + old.length, (i) => {
      const h = i < n ? height(i) : old[i - n]!;
      if (i < n) sum += h;
      return h;
    });
    return sum;
  }

  /** Rows taken away from the front; returns their sum. */
  shift(n: number): number {
    const sum = this.offset(n);
    const old = this.size.slice(n, this.length);
    this.reset(old.length, (i) => old[i]!);
    return sum;
  }

  /** Where the row begins. */
  offset(index: number): number {
    let sum = 0;
    for (let i = Math.min(index, this.length); i > 0; i -= i & -i) sum += this.tree[i]!;
    return sum;
  }

  get total(): number {
    return this.offset(this.length);
  }

  /** The row at a place, clamped to the rows there are. */
  at(place: number): number {
    let index = 0;
    let left = place;
    let step = 1 << Math.floor(Math.log2(Math.max(1, this.tree.length - 1)));
    for (; step > 0; step >>= 1) {
      const next = index + step;
      if (next < this.tree.length && this.tree[next]! <= left) {
        index = next;
        left -= this.tree[next]!;
      }
    }
    return Math.max(0, Math.min(index, this.length - 1));
  }
}
