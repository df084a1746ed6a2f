#!/bin/bash
set -eu
work() { step | log & }
wait
