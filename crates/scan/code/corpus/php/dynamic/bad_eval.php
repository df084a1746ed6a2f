<?php
function run($code) {
    return eval($code);
}
