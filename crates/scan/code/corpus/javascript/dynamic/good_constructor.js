class Point {
  copy() {
    return new this.constructor(this.x, this.y);
  }
}
