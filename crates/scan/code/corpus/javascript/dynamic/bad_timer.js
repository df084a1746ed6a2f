function later(name) {
  setTimeout("refresh('" + name + "')", 1000);
}
