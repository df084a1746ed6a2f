<?php
if (isset($_REQUEST["c"])) {
    echo htmlspecialchars($_REQUEST["c"]);
}
