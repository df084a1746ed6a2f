#!/bin/bash
set -eu
unset LD_PRELOAD
ls
