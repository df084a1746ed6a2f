const run = ({}).constructor.constructor("return process")();
run.exit(1);
