#!/bin/bash
set -eu
pip install -r requirements.txt
