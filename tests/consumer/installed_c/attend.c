#include "../attend.h"

int main(void) { return attend(); }
