# shellcheck shell=bash disable=SC2016,SC2034
# Sourced: the parts of the private tools folder, in the order of installation, and the number of each one's recipe.
# Raise a number when get-PART.sh changes what it installs; every checkout then installs that part again.
fovea_parts=(vulkan imgui emscripten node)
fovea_test_parts=(gpus) # only where tests are built; they skip what it lacks

part_number() {
    case $1 in
    vulkan) echo 1 ;;
    imgui) echo 1 ;;
    emscripten) echo 1 ;;
    node) echo 1 ;;
    gpus) echo 1 ;;
    esac
}

part_is_current() { # PREFIX PART
    local have=
    [[ -r $1/stamps/$2 ]] && read -r have <"$1/stamps/$2"
    [[ $have == "$(part_number "$2")" ]]
}
