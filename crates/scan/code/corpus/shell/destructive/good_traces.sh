#!/bin/bash
set -eu
rm -f notes.txt
