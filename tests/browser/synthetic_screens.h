// A page with one device for each first screen, made up, for tests of their layout.
#pragma once

#include "analyzer/report/page/page_data.h"

namespace fragtrace::page_test {

// The first eight devices have the screens in the order of PageScreen, and content for each section
// of the answer. The last device has a card without any content. Names are hostile.
analyzer::PageData screens_page();

}  // namespace fragtrace::page_test
